// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
export default () => ({
  // biome-ignore lint/suspicious/noThenProperty: what this program is about
  then: (done: (value: unknown) => void) => {
    for (;;) done(1);
  },
});
