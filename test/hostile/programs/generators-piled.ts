// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET
// within: 4000 ms
export default () => {
  const pile: Iterator<number>[] = [];
  for (;;) {
    const one = (function* () {
      yield 1;
    })();
    one.next();
    pile.push(one);
  }
};
