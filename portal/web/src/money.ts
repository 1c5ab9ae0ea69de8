// US dollars, as the person's browser writes them.
const format = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" });

export const dollars = (amount: number) => format.format(amount);
