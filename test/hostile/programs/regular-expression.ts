// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
export default () => /^(a+)+$/.test(`${"a".repeat(40)}b`);
