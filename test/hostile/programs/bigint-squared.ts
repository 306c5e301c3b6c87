// ends with: WF_SANDBOX_CPU_BUDGET WF_SANDBOX_KILLED WF_SANDBOX_MEMORY WF_SANDBOX_DEADLINE RangeError
// within: 5000 ms
// unstoppable
export default () => {
  let number = 3n;
  for (;;) number *= number;
};
