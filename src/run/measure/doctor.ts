import type { RendererOptions } from '@espalier/text/chat'
import { type Diagnosis, examine } from '@espalier/text/chat'
import { random, seedOf } from '../../base/math/random.ts'
import { type ModelSourceOptions, openRenderer } from '../settings/model-source.ts'
import { openNamed } from '../settings/open-named.ts'
import { checkServer, type ServerCheck } from './check-server.ts'

/** What to examine. */
export interface DoctorOptions {
  readonly renderer?: Partial<RendererOptions> & ModelSourceOptions
  /** Servers whose tokens are compared with the folder's. */
  readonly policies?: readonly string[]
  readonly key?: string
  readonly servedModel?: string
  /** How many random conversations are played. @default 40 */
  readonly conversations?: number
  /** @default 1 */
  readonly seed?: number
  readonly signal: AbortSignal
}

/** What is known about a model folder and the servers that should serve it. */
export interface Examination {
  readonly diagnosis: Diagnosis
  readonly servers: readonly ServerCheck[]
  /** Whether tokens are exact, as far as could be found out. */
  readonly isExact: boolean
}

/** Opens a model folder, audits its renderer, and compares servers with it. */
export async function examineModel(model: string, options: DoctorOptions): Promise<Examination> {
  const { conversations = 40, seed = 1, policies = [], signal, key, servedModel } = options
  const renderer = await openNamed(undefined, () => openRenderer(model, options.renderer))
  const diagnosis = examine(renderer, {
    conversations,
    random: index => random(seedOf(seed, 'doctor', index)),
  })
  const asking = {
    signal,
    ...(key !== undefined && { key }),
    ...(servedModel !== undefined && { servedModel }),
  }
  const servers: ServerCheck[] = []
  for (const policy of policies) servers.push(await checkServer(policy, renderer, asking))
  const differs = servers.some(
    ({ differences, problem }) => differences.length > 0 || problem !== undefined,
  )
  return { diagnosis, servers, isExact: diagnosis.problems.length === 0 && !differs }
}
