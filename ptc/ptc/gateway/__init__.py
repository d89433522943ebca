"""An embedded Responses peer: speaks the wire of the Responses API, strictly, and runs its programs itself.

`python -m ptc.gateway --script module:attr` serves it on a loopback port; `ptc.testing` starts one for a
test or a demo. What its model says is a script. Its programs are Python, where the hosted service's are
JavaScript.
"""
