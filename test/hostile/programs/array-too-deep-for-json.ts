// ends with: RangeError WF_SANDBOX_CPU_BUDGET WF_SANDBOX_MEMORY
// within: 2000 ms
// unstoppable
export default () => {
  let deep: unknown[] = [];
  for (let turn = 0; turn < 1e6; turn++) deep = [deep];
  return JSON.stringify(deep).length;
};
