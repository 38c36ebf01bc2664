/** How often an attempt is tried before it counts as poisoned. */
export const mostTries = 4
/**
 * After this many tries an attempt is made alone: a worker that dies then was killed by it, and no
 * other attempt is blamed.
 */
export const suspectAfter = 2
