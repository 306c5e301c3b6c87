// ends with: RangeError WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET WF_SANDBOX_KILLED
// within: 4500 ms
// unstoppable
export default () => [...".".repeat(5e8)].length;
