/** React 18, beside the newest one that the tests of the hook use too. */
import React from 'react'

export { createRoot } from 'react-dom/client'
export { React }
