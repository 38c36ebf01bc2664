import * as attention from './attention.ts'
import * as distribution from './distribution.ts'
import * as layer from './layer.ts'
import * as update from './update.ts'

export { shaderOf } from './kernel.ts'

/** All kernels, by their names. */
export const kernels = { ...layer, ...attention, ...distribution, ...update } as const

export type KernelName = keyof typeof kernels
