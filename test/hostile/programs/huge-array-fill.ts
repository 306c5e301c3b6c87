// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET WF_SANDBOX_KILLED WF_SANDBOX_DEADLINE RangeError
// within: 4500 ms
// unstoppable
export default () => new Array(2 ** 27).fill(1.5).length;
