/** The same package in its older version; the types of the newer one are near enough for a test. */
declare module 'express4' {
  const express: unknown
  export default express
}

declare module 'koa2' {
  import Koa from 'koa'
  export default Koa
}
