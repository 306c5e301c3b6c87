// ends with: RangeError WF_SANDBOX_CPU_BUDGET
// within: 1500 ms
export default () => {
  const again = (): void => {
    try {
      again();
    } catch {
      again();
    }
  };
  again();
};
