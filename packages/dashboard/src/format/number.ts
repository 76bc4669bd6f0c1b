/** Numbers as people read them: exact, with separators. */

const exact = new Intl.NumberFormat("en");

export const number = (value: number): string => exact.format(value);

/** Such as "1 run", "2 runs". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`;
