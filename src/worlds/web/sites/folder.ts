import { readFile, realpath } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import type { Serve } from '../network.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.gif': 'image/gif',
  '.jpg': 'image/jpeg',
  '.svg': 'image/svg+xml',
  '.woff': 'font/woff',
}

/** Serves the files of a folder, and nothing that lies outside of it. */
export function serveFolder(folder: string): Serve {
  return async ({ url }) => {
    const { pathname } = new URL(url)
    try {
      const root = await realpath(folder)
      const file = await realpath(join(root, decodeURIComponent(pathname)))
      if (!file.startsWith(root + sep)) return new Response('not found', { status: 404 })
      const type = types[extname(file)] ?? 'application/octet-stream'
      return new Response(new Uint8Array(await readFile(file)), {
        headers: { 'content-type': type },
      })
    } catch {
      return new Response('not found', { status: 404 })
    }
  }
}
