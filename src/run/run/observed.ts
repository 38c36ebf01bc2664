import type { Policy, PrefixCache } from '../../base/core/policy.ts'
import { listenAll } from '../watch/events.ts'
import { type ObserverNotes, type ObserverSettings, openObservers } from '../watch/observe.ts'
import type { RollParts } from './roll-groups.ts'

/** The parts of a run with everything that options ask to watch it. Disposing of it closes the observers. */
export interface ObservedParts<Data> extends AsyncDisposable {
  readonly parts: RollParts<Data>
  notes(): Promise<ObserverNotes>
}

/** Opens the observers of a run folder around the parts that are rolled into it. */
export async function openObserved<Data>(
  parts: RollParts<Data>,
  options: ObserverSettings & { readonly out: string; readonly tell?: (line: string) => void },
): Promise<ObservedParts<Data>> {
  const { out, tell = () => {} } = options
  const { renderer, policy } = parts
  const watched = { out, tell, renderer, policy: policy.name, isOurs: policy.inside !== undefined }
  const before = await cacheOf(policy)
  const observers = await openObservers(options, watched)
  return {
    parts: {
      ...parts,
      listen: listenAll(parts.listen, observers.listen),
      instruments: [...(parts.instruments ?? []), ...observers.instruments],
    },
    async notes() {
      const prefixCache = since(before, await cacheOf(policy))
      return { ...observers.notes(), ...(prefixCache && { prefixCache }) }
    },
    [Symbol.asyncDispose]: () => observers[Symbol.asyncDispose](),
  }
}

/** A server that does not answer this soon is asked nothing that a run can do without. */
const soon = 5000

async function cacheOf({ prefixCache }: Policy): Promise<PrefixCache | undefined> {
  return await prefixCache?.({ signal: AbortSignal.timeout(soon) }).catch(() => undefined)
}

/** What was counted meanwhile; nothing if the server was started again, which counts anew. */
function since(
  before: PrefixCache | undefined,
  after: PrefixCache | undefined,
): PrefixCache | undefined {
  if (!before || !after || after.asked <= before.asked) return undefined
  return { asked: after.asked - before.asked, found: Math.max(0, after.found - before.found) }
}
