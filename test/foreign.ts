/** JSON that another program wrote; the tests check what it contains. */
// biome-ignore lint/suspicious/noExplicitAny: a shape written down here would be asserted, not seen
export type Foreign = any
