/** A refused request, with its HTTP status. */
export class RolloutsError extends Error {
  override name = 'RolloutsError'
  readonly code: 400 | 404 | 409 | 429

  constructor(code: RolloutsError['code'], message: string) {
    super(message)
    this.code = code
  }
}
