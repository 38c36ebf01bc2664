import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { builtFile } from '../../base/core/process/package-folder.ts'

/** A file of the page. */
export interface PageFile {
  readonly type: string
  readonly bytes: Buffer
}

/** The page as it was built. */
export interface PageFiles {
  readonly html: string
  /** Everything else by its path: `assets/index-….js`. */
  readonly files: ReadonlyMap<string, PageFile>
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/** Reads the built page; in a checkout without a build, the error says how to build it. */
export function readPage(): PageFiles {
  const folder = fileURLToPath(builtFile('viewer'))
  if (!existsSync(join(folder, 'index.html')))
    throw new Error('the page is not built: npm run build')
  const files = new Map<string, PageFile>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const type = types[extname(entry.name)]
    if (!entry.isFile() || type === undefined) continue
    files.set(path.slice(folder.length + 1).replaceAll('\\', '/'), {
      type,
      bytes: readFileSync(path),
    })
  }
  return { html: readFileSync(join(folder, 'index.html'), 'utf8'), files }
}

/** Content security policy: only what this program serves may run or be loaded. */
export const servedPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/** The page in one file: what it needs is inside, and nothing else may run or be loaded. */
export function inlinePage({ html, files }: PageFiles, data: string): string {
  const text = (path: string): string =>
    files.get(path.replace(/^\.?\//, ''))!.bytes.toString('utf8')
  const style = inlineFonts(
    [...html.matchAll(/<link rel="stylesheet"[^>]*href="([^"]+)"[^>]*>/g)]
      .map(([, path]) => text(path!))
      .join('\n'),
    files,
  )
  const script = [...html.matchAll(/<script type="module"[^>]*src="([^"]+)"[^>]*><\/script>/g)]
    .map(([, path]) => text(path!))
    .join('\n')
    // A script element ends at the first closing tag, even inside a string.
    .replaceAll('</script', '<\\/script')
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    'font-src data:',
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  const title = /<title>[^<]*<\/title>/.exec(html)?.[0] ?? ''
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    title,
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    '<div id="app"></div>',
    data,
    `<script type="module">${script}</script>`,
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

function inlineFonts(style: string, files: PageFiles['files']): string {
  return style.replace(/url\((?:"|')?\.?\/?([^)"']+\.woff2)(?:"|')?\)/g, (_, path: string) => {
    const name = path.split('/').at(-1)!
    const font = [...files].find(([each]) => each.endsWith(name))?.[1]
    return font ? `url(data:font/woff2;base64,${font.bytes.toString('base64')})` : 'local("none")'
  })
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
