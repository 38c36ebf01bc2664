/** A path that agents ask the model on. */
export interface ModelPath {
  /** The path as its dialect has it, as it was sent. */
  readonly path: string
  /** The attempt that it names, if it names one. */
  readonly attempt?: string
}

/**
 * Where the paths of the dialects begin, an attempt that is named there, and the dialect's own part.
 * Some clients have a base URL that ends before the version, or leave it out.
 */
const shape =
  /^(?:\/attempts\/([^/]+)|\/rllm(?:\/sessions\/([^/]+))?|\/openenv)?(\/v1(?:beta|alpha)?\/.*|\/(?:chat\/completions|responses|messages|models))$/

/** What a path asks the model; nothing if it asks for something else. */
export function modelPathOf(path: string): ModelPath | undefined {
  const [, named, session, own] = shape.exec(path) ?? []
  if (own === undefined) return undefined
  const attempt = named ?? session
  return attempt === undefined ? { path: own } : { path: own, attempt }
}
