// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET
// within: 4000 ms
export default () => {
  const map = new Map();
  for (let key = 0; ; key++) map.set(key, { key });
};
