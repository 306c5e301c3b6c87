// ends with: WF_SANDBOX_CPU_BUDGET
// within: 700 ms
export default () => {
  let _turns = 0;
  while (true) _turns++;
};
