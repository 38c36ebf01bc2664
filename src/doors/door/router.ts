import { RefusedRequest } from './refused-request.ts'

/** What a path has to be: a text in which `:name` stands for any one part, or a function that reads it. */
export type PathPattern = string | ((path: string) => object | undefined)

type Names<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Names<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** What a path says by its pattern. */
export type ParamsOf<Pattern extends PathPattern> = Pattern extends string
  ? { readonly [Name in Names<Pattern>]: string }
  : Pattern extends (path: string) => infer Found
    ? NonNullable<Found>
    : never

interface Place<Route> {
  readonly methods: readonly string[]
  readonly read: (path: string) => object | undefined
  readonly route: Route
}

/** A route that was found, and what the path said. */
export interface FoundRoute<Route> {
  readonly route: Route
  readonly params: object
}

/** Finds what a method and a path ask for: whole paths first, then patterns in the order they were added. */
export class Router<Route> {
  readonly #whole = new Map<string, Route>()
  readonly #places: Place<Route>[] = []

  add(methods: readonly string[], pattern: PathPattern, route: Route): void {
    if (typeof pattern === 'string' && !pattern.includes(':')) {
      for (const method of methods) this.#whole.set(`${method} ${pattern}`, route)
      return
    }
    const read = typeof pattern === 'string' ? readerOf(pattern) : pattern
    this.#places.push({ methods, read, route })
  }

  /** Throws if the path cannot be decoded. */
  find(asked: string, path: string): FoundRoute<Route> | undefined {
    const method = asked === 'HEAD' ? 'GET' : asked
    const whole = this.#whole.get(`${method} ${path}`)
    if (whole !== undefined) return { route: whole, params: {} }
    for (const { methods, read, route } of this.#places) {
      const params = methods.includes(method) ? read(path) : undefined
      if (params) return { route, params: path.includes('%') ? decoded(params) : params }
    }
    return undefined
  }
}

function readerOf(pattern: string): (path: string) => object | undefined {
  const names: string[] = []
  const parts = pattern.split('/').map(part => {
    if (!part.startsWith(':')) return part.replace(/[^\w-]/g, '\\$&')
    names.push(part.slice(1))
    return '([^/]+)'
  })
  const shape = new RegExp(`^${parts.join('/')}$`)
  return path => {
    const found = shape.exec(path)
    return found
      ? Object.fromEntries(names.map((name, index) => [name, found[index + 1]]))
      : undefined
  }
}

function decoded(params: object): object {
  const entries = Object.entries(params as Readonly<Record<string, string>>)
  return Object.fromEntries(entries.map(([name, part]) => [name, unescaped(part)]))
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    const quoted = JSON.stringify(part.slice(0, 200))
    throw new RefusedRequest(400, `${quoted} is no part of a URL`)
  }
}
