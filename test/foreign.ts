/** JSON that another program wrote, for tests to look into: what it holds is what they find out. */
// biome-ignore lint/suspicious/noExplicitAny: a shape written down here would be asserted, not seen
export type Foreign = any
