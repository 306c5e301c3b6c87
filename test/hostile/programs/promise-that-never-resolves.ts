// ends with: WF_SANDBOX_DEADLINE
// within: 3300 ms
export default () => new Promise(() => {});
