/** The blanks and line breaks before and after a raw value. Other spaces of Unicode are content. */
interface Edges {
  readonly lead: string
  readonly trail: string
}

const leading = /^[ \t\r\n]*/
const content = /[^ \t\r\n]/

/**
 * Removes the layout from raw values: blanks and line breaks that a model writes between a tag and a
 * value, and that do not belong to the value.
 *
 * No grammar tells the two apart, so all values of one call are looked at together. Layout is the
 * same around each of them; a value's own edge is not. Where all are the same, and no number, flag
 * or object among them (whose edges can only be layout) settles it, an edge that text often has of
 * itself stays: a line break or an indentation on one side, or blanks around a lone line.
 */
export function withoutLayout(values: readonly { raw: string; isText: boolean }[]): string[] {
  const raws = values.map(value => value.raw)
  const common = commonEdges(raws)
  if (!common) return raws
  const settled = values.some(value => !value.isText)
  if (!settled && (looksOwn(common) || (raws.length === 1 && isLine(common)))) return raws
  const { lead, trail } = common
  return raws.map(raw => raw.slice(lead.length, Math.max(lead.length, raw.length - trail.length)))
}

/** Removes one line break from each side, for formats that put values on lines of their own. */
export function withoutLines(raw: string): string {
  const start = raw.startsWith('\n') ? 1 : 0
  const end = raw.length > start && raw.endsWith('\n') ? raw.length - 1 : raw.length
  return raw.slice(start, end)
}

function commonEdges(raws: readonly string[]): Edges | undefined {
  const full = raws.find(raw => content.test(raw))
  if (full === undefined) return undefined
  const { lead, trail } = edgesOf(full)
  if (lead === '' && trail === '') return undefined
  return raws.every(raw => hasEdges(raw, { lead, trail })) ? { lead, trail } : undefined
}

function edgesOf(raw: string): Edges {
  const lead = leading.exec(raw)?.[0] ?? ''
  let end = raw.length
  while (end > lead.length && ' \t\r\n'.includes(raw[end - 1]!)) end--
  return { lead, trail: raw.slice(end) }
}

function hasEdges(raw: string, edges: Edges): boolean {
  const own = edgesOf(raw)
  if (own.lead.length === raw.length) return raw === edges.lead + edges.trail
  return own.lead === edges.lead && own.trail === edges.trail
}

const looksOwn = ({ lead, trail }: Edges): boolean =>
  (lead === '' || trail === '') && /^(?:\n|\t+| {2,})$/.test(lead + trail)

const isLine = ({ lead, trail }: Edges): boolean =>
  /^[ \t]+$/.test(lead) && /^[ \t]+\n$/.test(trail)
