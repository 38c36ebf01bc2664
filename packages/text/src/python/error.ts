/** An exception as Python would raise it: `type` is the name of Python's class, such as `TypeError`. */
export class PythonError extends Error {
  readonly type: string
  constructor(type: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.type = type
    this.name = type
  }
}

/** Something that Python can do and this room cannot. No program can catch it: its answer would be another. */
export class UnsupportedError extends Error {
  override name = 'UnsupportedError'
  constructor(what: string) {
    super(`${what} is not supported here.`)
  }
}
