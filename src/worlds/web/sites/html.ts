/** A piece of HTML; whatever else stands in a page is text. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | string | number | undefined | readonly Piece[]

/** HTML with pieces of text in it, which are escaped, and of HTML, which are not. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  const shown = pieces.map(show)
  return new Html(strings.map((text, index) => text + (shown[index] ?? '')).join(''))
}

function show(piece: Piece): string {
  if (piece instanceof Html) return piece.text
  if (Array.isArray(piece)) return piece.map(show).join('')
  return String(piece ?? '').replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

const style =
  'body{font:16px/1.5 sans-serif;margin:24px;max-width:900px}td,th{padding:4px 12px;text-align:left}label{display:block;margin:8px 0}'

/** A page of a site, with the links that all its pages have. */
export function page(site: string, title: string, content: Html): Response {
  const { text } =
    html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><style>${new Html(style)}</style></head><body><nav><a href="/">${site}</a></nav><main><h1>${title}</h1>${content}</main></body></html>`
  return new Response(text, { headers: { 'content-type': 'text/html; charset=utf-8' } })
}

/** Sends the browser on, after a form was taken. */
export function seeOther(path: string): Response {
  return new Response(null, { status: 303, headers: { location: path } })
}

/** A file that is downloaded. */
export function attachment(name: string, text: string): Response {
  return new Response(text, {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${name}"`,
    },
  })
}

/** A list of choices, one of them chosen. */
export function choices(
  name: string,
  label: string,
  options: readonly string[],
  chosen = '',
): Html {
  const items = options.map(
    option =>
      html`<option value="${option}"${option === chosen ? new Html(' selected') : ''}>${option || 'any'}</option>`,
  )
  return html`<label>${label} <select name="${name}">${items}</select></label>`
}

/** A site's answer to each method and path; anything else is not found. */
export type Routes = Readonly<Record<string, (asked: Asked) => Response | undefined>>

/** What was asked for: the values of the address, and of the form. */
export interface Asked {
  readonly query: URLSearchParams
  readonly form: URLSearchParams
}

/** Serves routes such as `GET /cart`. */
export function serve(site: string, routes: Routes): (request: Request) => Promise<Response> {
  return async request => {
    const { pathname, searchParams: query } = new URL(request.url)
    const key = `${request.method} ${pathname}`
    const route = Object.hasOwn(routes, key) ? routes[key] : undefined
    const form = new URLSearchParams(request.method === 'POST' ? await request.text() : '')
    const answer = route?.({ query, form })
    if (answer) return answer
    const { body, headers } = page(site, 'Not found', html`<p>There is nothing here.</p>`)
    return new Response(body, { status: 404, headers })
  }
}
