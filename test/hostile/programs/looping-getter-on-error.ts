// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
export default () => {
  throw Object.defineProperty(new Error("x"), "stack", {
    get() {
      for (;;) Math.sqrt(2);
    },
  });
};
