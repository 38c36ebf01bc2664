// How long the library takes to be imported, by a process that has imported nothing.
const start = performance.now()
await import('../../../dist/index.js')
console.log(JSON.stringify({ figures: { importMilliseconds: performance.now() - start } }))
