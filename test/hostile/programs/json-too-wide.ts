// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET WF_SANDBOX_KILLED WF_SANDBOX_DEADLINE
// within: 5000 ms
// unstoppable
export default () => JSON.parse(`[${"1,".repeat(2e7)}1]`).length;
