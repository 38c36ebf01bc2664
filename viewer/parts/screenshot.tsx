import type { Json } from '../../src/base/core/ids.ts'

/** What a page looked like after a turn, if the world kept a picture of it; before the first, `turn` is -1. */
export function Screenshot({ report, turn }: { report: Json; turn: number }) {
  const source = pictureOf(report, turn)
  if (source === undefined) return null
  const of = turn < 0 ? 'at the beginning' : `after turn ${turn}`
  return (
    <details class="screenshot" open>
      <summary>The page {of}</summary>
      <img src={source} alt={`The page ${of}`} />
    </details>
  )
}

/** The picture of a turn as the browser can show it: only what is a JPEG by its letters is given to it. */
function pictureOf(report: Json, turn: number): string | undefined {
  const { screenshots } = (report ?? {}) as { readonly screenshots?: unknown }
  if (!Array.isArray(screenshots)) return undefined
  const found: unknown = screenshots.find(each => each?.turn === turn)
  const { type, data } = (found ?? {}) as Readonly<Record<string, unknown>>
  if (type !== 'image/jpeg' || typeof data !== 'string' || !/^[\w+/]+=*$/.test(data))
    return undefined
  return `data:image/jpeg;base64,${data}`
}
