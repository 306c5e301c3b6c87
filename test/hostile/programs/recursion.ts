// ends with: RangeError
// within: 1000 ms
export default () => {
  const again = (): number => 1 + again();
  return again();
};
