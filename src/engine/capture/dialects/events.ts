/** A server-sent event with a name. */
export function namedEvent(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** A server-sent event without one. */
export function plainEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
