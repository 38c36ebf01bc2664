import type { OwnerStart } from '../protocol.ts'
import type { Engine } from './engine.ts'
import { openHeapEngine } from './heap-engine.ts'

/** What an engine is opened with besides its model. */
export interface EngineOptions {
  /** The file that helping threads run. */
  readonly file: URL
  /** Hears what people should know. */
  readonly tell: (text: string) => void
}

/** Opens what computes for a model: the graphics card if it is asked for, or is there and `auto` is. */
export async function openEngine(
  start: OwnerStart,
  { file, tell }: EngineOptions,
): Promise<Engine> {
  const { weights, shape, device } = start
  if (weights.kind !== 'pretrained' || device === 'cpu') return openHeapEngine(start, file)
  const { findCard } = await import('../gpu/card.ts')
  const find = () => (device === 'auto' ? findCard().catch(() => undefined) : findCard())
  const found = await find()
  if (!found && device === 'gpu') {
    throw new Error(
      '--device gpu: no graphics card was found that WebGPU can use (Vulkan, Metal or Direct3D 12).',
    )
  }
  // What the processor plays is slower than what it computes itself.
  if (!found || (device === 'auto' && found.isPlayed)) return openHeapEngine(start, file)
  const { openCardEngine } = await import('../gpu/engine.ts')
  return await openCardEngine({ path: weights.path, shape, found, find, tell })
}
