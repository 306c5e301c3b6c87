// ends with: WF_SANDBOX_CPU_BUDGET
// within: 1500 ms
export default () =>
  new Promise(() => {
    setInterval(() => {
      const until = Date.now() + 20;
      while (Date.now() < until);
    }, 0);
  });
