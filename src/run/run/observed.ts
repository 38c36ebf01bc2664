import { listenAll } from '../watch/events.ts'
import { type ObserverNotes, type ObserverSettings, openObservers } from '../watch/observe.ts'
import type { RollParts } from './roll-groups.ts'

/** The parts of a run with everything that options ask to watch it. Disposing of it closes the observers. */
export interface ObservedParts<Data> extends AsyncDisposable {
  readonly parts: RollParts<Data>
  notes(): ObserverNotes
}

/** Opens the observers of a run folder around the parts that are rolled into it. */
export async function openObserved<Data>(
  parts: RollParts<Data>,
  options: ObserverSettings & { readonly out: string; readonly tell?: (line: string) => void },
): Promise<ObservedParts<Data>> {
  const { out, tell = () => {} } = options
  const { renderer, policy } = parts
  const watched = { out, tell, renderer, policy: policy.name, isOurs: policy.inside !== undefined }
  const observers = await openObservers(options, watched)
  return {
    parts: {
      ...parts,
      listen: listenAll(parts.listen, observers.listen),
      instruments: [...(parts.instruments ?? []), ...observers.instruments],
    },
    notes: observers.notes,
    [Symbol.asyncDispose]: () => observers[Symbol.asyncDispose](),
  }
}
