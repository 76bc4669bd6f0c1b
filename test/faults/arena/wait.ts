/** How long a fault lasts; what follows from it is waited for with `until`. */
export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
