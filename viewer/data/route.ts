import { useEffect, useState } from 'preact/hooks'

/** A view and its parameters, as the address has them. */
export interface Route {
  /** `['run', 'demo', 'groups']` */
  readonly path: readonly string[]
  readonly params: Readonly<Record<string, string>>
}

export function readRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const parts = path
    .split('/')
    .filter(part => part !== '')
    .map(decode)
  return { path: parts, params: Object.fromEntries(new URLSearchParams(search)) }
}

/** A mistyped address still opens a page. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

type Params = Readonly<Record<string, string | number | undefined | null>>

/** The address of a view. */
export function hrefTo(path: readonly string[], params: Params = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

/** Goes to a view; `replace` leaves no step to go back to. */
export function goTo(href: string, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(null, '', href)
    dispatchEvent(new HashChangeEvent('hashchange'))
  } else location.hash = href
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const listen = (): void => setHash(location.hash)
    addEventListener('hashchange', listen)
    return () => removeEventListener('hashchange', listen)
  }, [])
  return readRoute(hash)
}
