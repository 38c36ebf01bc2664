// What the engine calls.

export { keptBytes, scratchBytes } from './activations'
export { configure } from './plan'
export { run, serve } from './queue'
export { project, wideColumns } from './wide'
