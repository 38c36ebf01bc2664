/** How often an attempt is tried before it counts as poisoned. */
export const mostTries = 4
/**
 * Tries after which an attempt is made alone: whoever dies then was killed by it, and those that were
 * in the same hands are not blamed for it.
 */
export const suspectAfter = 2
