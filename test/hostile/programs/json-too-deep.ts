// ends with: RangeError WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET ok
// within: 4000 ms
// unstoppable
export default () => JSON.parse("[".repeat(1e6) + "]".repeat(1e6)).length;
