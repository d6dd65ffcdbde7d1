// What importing the root of the package loads beside its own files, by both builds.
import Module, { createRequire, register } from 'node:module'
import { MessageChannel } from 'node:worker_threads'

const hook = `
  let port
  export function initialize(data) { port = data.port }
  export async function resolve(specifier, context, next) {
    port.postMessage(specifier)
    return next(specifier, context)
  }`
const { port1, port2 } = new MessageChannel()
const esm = new Set()
port1.on('message', (specifier) => esm.add(specifier))
register(`data:text/javascript,${encodeURIComponent(hook)}`, {
  parentURL: import.meta.url,
  data: { port: port2 },
  transferList: [port2],
})
await import('onlyonce')
// A message that was sent before it has arrived before it.
await import('node:zlib')
while (!esm.has('node:zlib')) await new Promise((resolve) => setImmediate(resolve))
port1.close()

const cjs = new Set()
const load = Module._load
Module._load = function (request, ...rest) {
  cjs.add(request)
  return load.call(this, request, ...rest)
}
createRequire(import.meta.url)('onlyonce')

const outside = (names) => [...names].filter((name) => !/^\.|^onlyonce$|^node:zlib$/.test(name)).sort()
console.log(JSON.stringify({ esm: outside(esm), cjs: outside(cjs) }))
