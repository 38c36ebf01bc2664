const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** What no value may hold: anything that would end its line, or has no byte of its own. */
const outside = /[^\t\x20-\x7e\x80-\xff]/

/** Headers as they are written; given as names and values, one after the other. */
export function headerLines(headers: readonly string[]): string {
  let lines = ''
  for (let index = 0; index < headers.length; index += 2) {
    const [key, value] = [headers[index]!, headers[index + 1]!]
    if (!name.test(key)) throw new Error(`"${key}" is not the name of a header.`)
    if (outside.test(value))
      throw new Error(`The value of the header "${key}" has characters that no header may have.`)
    lines += `${key}: ${value}\r\n`
  }
  return lines
}
