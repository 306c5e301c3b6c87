// ends with: RangeError WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET
// within: 4000 ms
export default () => {
  let text = "x";
  for (;;) text = text + text;
};
