/** A request that is refused, with the code of its answer. */
export class RefusedRequest extends Error {
  override name = 'RefusedRequest'
  readonly statusCode: number

  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}
