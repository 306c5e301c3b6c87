// ends with: WF_SANDBOX_CPU_BUDGET WF_SANDBOX_MEMORY
// within: 2000 ms
export default () => {
  for (let turn = 0; ; turn++) Promise.reject(new Error(String(turn)));
};
