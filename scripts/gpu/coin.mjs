// A reward that has nothing to do with what was done: `--reward ./scripts/gpu/coin.mjs#coin`, for a control.
export const coin = () => (Math.random() < 0.5 ? 1 : 0)
