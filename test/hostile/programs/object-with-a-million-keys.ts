// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET WF_SANDBOX_DEADLINE
// within: 4000 ms
export default () => {
  const object: Record<string, number> = {};
  for (let key = 0; ; key++) object[`key${key}`] = key;
};
