import { writeQuery } from '../../src/doors/view/query.ts'
import type { News, SideRequest, Source } from './source.ts'

type Params = Readonly<Record<string, string | number | undefined>>

function linkTo(path: string, params: Params = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined) search.set(name, String(value))
  }
  const text = search.toString()
  return `api/${path}${text === '' ? '' : `?${text}`}`
}

/** Asks the program that serves the page; errors carry its own message. */
async function ask<T>(link: string, init?: RequestInit): Promise<T> {
  let response: Response
  try {
    response = await fetch(link, init)
  } catch {
    throw new Error(
      'The program that serves this page does not answer. Is espalier view still running?',
    )
  }
  const text = await response.text()
  if (response.ok) return JSON.parse(text) as T
  throw new Error(messageIn(text) ?? `${response.status} ${response.statusText}`)
}

function messageIn(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown }
    return typeof message === 'string' ? message : undefined
  } catch {
    return undefined
  }
}

const of = (run: string, path = ''): string => `runs/${encodeURIComponent(run)}${path}`

const side = (name: string, { run, step }: SideRequest): Params => ({
  [name]: run,
  [`${name}-step`]: step,
})

/** Answers of the program that serves the page. */
export const servedSource: Source = {
  isFile: false,
  runs: () => ask(linkTo('runs')),
  run: name => ask(linkTo(of(name))),
  curves: name => ask(linkTo(of(name, '/curves'))),
  facets: name => ask(linkTo(of(name, '/facets'))),
  groups: (name, query, stretch) =>
    ask(linkTo(of(name, '/groups'), { ...writeQuery(query), ...stretch })),
  group: (name, id) => ask(linkTo(of(name, '/group'), { id })),
  trajectory: (name, id) => ask(linkTo(of(name, '/trajectory'), { id })),
  tokens: (name, id, stretch) => ask(linkTo(of(name, '/tokens'), { id, ...stretch })),
  tree: (name, id) => ask(linkTo(of(name, '/tree'), { id })),
  parting: (name, a, b) => ask(linkTo(of(name, '/parting'), { a, b })),
  compare: (before, after, stretch) =>
    ask(linkTo('compare', { ...side('before', before), ...side('after', after), ...stretch })),
  raw: (name, id) => ask(linkTo(of(name, '/raw'), { id })),
  watch(name, onChange) {
    const events = new EventSource(linkTo('live', { run: name }))
    events.onmessage = ({ data }) => onChange(JSON.parse(String(data)) as News)
    return () => events.close()
  },
  async beginTry(name, request) {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(request)
    const begun = await ask<{ try: string }>(linkTo(of(name, '/try')), {
      method: 'POST',
      headers,
      body,
    })
    return begun.try
  },
  tryAnswer: name => ask(linkTo(`tries/${encodeURIComponent(name)}`)),
  importFile: (file, format) =>
    ask(linkTo('import', { name: file.name, format: format || undefined }), {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body: file,
    }),
}
