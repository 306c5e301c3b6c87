// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET WF_SANDBOX_KILLED
// within: 4000 ms
export default () => {
  const set = new Set<string>();
  for (let key = 0; ; key++) set.add(`key-${key}`);
};
