import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import type { Source } from './source.ts'

/** Where answers come from; set once. */
export const SourceContext = createContext<Source | undefined>(undefined)

/** Rises when the run that is shown has grown. */
export const VersionContext = createContext(0)

export function useSource(): Source {
  return useContext(SourceContext)!
}

/** The state of a request: waiting, loaded, or failed with a reason. */
export type Loaded<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'ready'; readonly value: T }
  | { readonly kind: 'failed'; readonly problem: string }

/**
 * Loads when the key changes, and again when the run has grown; the old data stays visible meanwhile,
 * so that a growing run does not flicker.
 */
export function useData<T>(key: string, load: (source: Source) => Promise<T>): Loaded<T> {
  const source = useSource()
  const version = useContext(VersionContext)
  const [state, setState] = useState<{ key: string; loaded: Loaded<T> }>({
    key,
    loaded: { kind: 'loading' },
  })
  const asked = useRef(0)
  useEffect(() => {
    const number = ++asked.current
    const set = (loaded: Loaded<T>): void => {
      if (asked.current === number) setState({ key, loaded })
    }
    load(source).then(
      value => set({ kind: 'ready', value }),
      (error: unknown) => set({ kind: 'failed', problem: (error as Error).message }),
    )
  }, [key, version])
  return state.key === key ? state.loaded : { kind: 'loading' }
}
