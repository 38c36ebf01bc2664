// What the engine calls.

export { keptBytes, scratchBytes } from './activations'
export { multiply } from './matmul'
export { configure } from './plan'
export { run, serve } from './queue'
