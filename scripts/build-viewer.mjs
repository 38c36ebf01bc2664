// Builds the page of `viewer/` into `dist/viewer`: one script, one style sheet, three fonts.
import { readFileSync, writeFileSync } from 'node:fs'
import { build } from 'vite'

const fonts = ['inter', 'source-serif-4', 'jetbrains-mono']

/** Builds the page; everything it needs is inside. */
export async function buildViewer() {
  await build({
    configFile: false,
    root: 'viewer',
    base: './',
    logLevel: 'warn',
    build: {
      outDir: '../dist/viewer',
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: false,
      target: 'es2022',
    },
    esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  })
  writeFileSync('dist/viewer/licenses.txt', licenses())
}

/** What the page is made of may be handed on with its licenses. */
function licenses() {
  const of = name => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}\n`
  return ['preact', 'uplot', ...fonts.map(font => `@fontsource-variable/${font}`)]
    .map(of)
    .join(`\n${'-'.repeat(80)}\n\n`)
}
